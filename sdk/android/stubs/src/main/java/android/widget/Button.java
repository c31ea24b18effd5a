package android.widget;

import android.content.Context;

/** Compile-time stub for the sample. */
public class Button extends TextView {
    public Button(Context context) {
        super(context);
    }
}
