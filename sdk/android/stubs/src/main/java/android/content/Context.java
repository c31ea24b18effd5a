package android.content;

import android.content.pm.PackageManager;
import android.content.res.Resources;
import java.io.File;

/** Compile-time stub: only what the SDK uses. */
public abstract class Context {
    public static final int BIND_AUTO_CREATE = 1;
    public static final String CONNECTIVITY_SERVICE = "connectivity";

    public abstract Context getApplicationContext();

    public abstract String getPackageName();

    public abstract PackageManager getPackageManager();

    public abstract Resources getResources();

    public abstract File getNoBackupFilesDir();

    public abstract Object getSystemService(String name);

    public abstract boolean bindService(Intent service, ServiceConnection connection, int flags);

    public abstract void unbindService(ServiceConnection connection);

    public abstract int checkCallingOrSelfPermission(String permission);
}
