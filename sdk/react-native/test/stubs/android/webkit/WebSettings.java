package android.webkit;

import android.content.Context;

public abstract class WebSettings {
    public static String getDefaultUserAgent(Context context) { throw new RuntimeException(); }
}
