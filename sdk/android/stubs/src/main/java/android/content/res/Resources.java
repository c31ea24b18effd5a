package android.content.res;

import android.util.DisplayMetrics;

/** Compile-time stub: only what the SDK uses. */
public class Resources {
    public DisplayMetrics getDisplayMetrics() {
        return new DisplayMetrics();
    }
}
