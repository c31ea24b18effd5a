package android.os;

/** Compile-time stub. */
public final class Looper {
    private static final Looper MAIN = new Looper();

    public static Looper getMainLooper() {
        return MAIN;
    }
}
