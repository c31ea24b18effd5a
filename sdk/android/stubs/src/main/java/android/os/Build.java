package android.os;

/** Compile-time stub: only what the SDK uses. */
public class Build {
    public static final String MODEL = stub("Pixel 8");
    public static final String MANUFACTURER = stub("Google");

    /** A call, because the compiler would copy a constant into the SDK. */
    private static String stub(String value) {
        return value;
    }

    public static class VERSION {
        public static final String RELEASE = stub("14");
    }
}
