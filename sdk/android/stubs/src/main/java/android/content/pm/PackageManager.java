package android.content.pm;

/** Compile-time stub: only what the SDK uses. */
public abstract class PackageManager {
    public static final int GET_PERMISSIONS = 0x00001000;
    public static final int PERMISSION_GRANTED = 0;

    public abstract PackageInfo getPackageInfo(String packageName, int flags) throws NameNotFoundException;

    public static class NameNotFoundException extends Exception {}
}
