package android.content.pm;

/** Compile-time stub: only what the SDK uses. */
public class PackageInfo {
    public String versionName;
    public String[] requestedPermissions;
}
