package android.app;

import android.content.Context;
import android.content.ContextWrapper;
import android.os.Bundle;

/** Compile-time stub: only what the SDK and the sample use. */
public class Application extends ContextWrapper {
    public Application() {
        super(null);
    }

    public Application(Context base) {
        super(base);
    }

    public void onCreate() {}

    public void registerActivityLifecycleCallbacks(ActivityLifecycleCallbacks callback) {}

    public interface ActivityLifecycleCallbacks {
        void onActivityCreated(Activity activity, Bundle savedInstanceState);

        void onActivityStarted(Activity activity);

        void onActivityResumed(Activity activity);

        void onActivityPaused(Activity activity);

        void onActivityStopped(Activity activity);

        void onActivitySaveInstanceState(Activity activity, Bundle outState);

        void onActivityDestroyed(Activity activity);
    }
}
