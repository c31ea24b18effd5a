package android.content;

import android.content.pm.PackageManager;
import android.content.res.Resources;
import java.io.File;

/** Compile-time stub: only what the SDK uses. */
public class ContextWrapper extends Context {
    private final Context base;

    public ContextWrapper(Context base) {
        this.base = base;
    }

    @Override
    public Context getApplicationContext() {
        return base.getApplicationContext();
    }

    @Override
    public String getPackageName() {
        return base.getPackageName();
    }

    @Override
    public PackageManager getPackageManager() {
        return base.getPackageManager();
    }

    @Override
    public Resources getResources() {
        return base.getResources();
    }

    @Override
    public File getNoBackupFilesDir() {
        return base.getNoBackupFilesDir();
    }

    @Override
    public Object getSystemService(String name) {
        return base.getSystemService(name);
    }

    @Override
    public boolean bindService(Intent service, ServiceConnection connection, int flags) {
        return base.bindService(service, connection, flags);
    }

    @Override
    public void unbindService(ServiceConnection connection) {
        base.unbindService(connection);
    }

    @Override
    public int checkCallingOrSelfPermission(String permission) {
        return base.checkCallingOrSelfPermission(permission);
    }
}
