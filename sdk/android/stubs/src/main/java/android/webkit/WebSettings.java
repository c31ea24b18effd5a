package android.webkit;

import android.content.Context;

/** Compile-time stub: only what the SDK uses. */
public abstract class WebSettings {
    public static String getDefaultUserAgent(Context context) {
        return "Mozilla/5.0 (Linux; Android 14; Pixel 8)";
    }
}
