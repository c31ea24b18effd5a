package android.widget;

import android.content.Context;
import android.view.View;

/** Compile-time stub for the sample. */
public class TextView extends View {
    public TextView(Context context) {
        super(context);
    }

    public final void setText(CharSequence text) {}
}
