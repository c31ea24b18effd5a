package android.util;

/** Compile-time stub: only what the SDK uses. */
public final class Log {
    public static int d(String tag, String message) {
        return 0;
    }

    public static int w(String tag, String message) {
        return 0;
    }
}
