package android.system;

/** Compile-time stub: only what the SDK uses. */
public final class OsConstants {
    public static final int O_RDONLY = stub();

    /** A call, because the value depends on the device. */
    private static int stub() {
        return 0;
    }
}
