package android.widget;

import android.content.Context;
import android.view.View;

/** Compile-time stub for the sample. */
public class LinearLayout extends View {
    public static final int VERTICAL = 1;

    public LinearLayout(Context context) {
        super(context);
    }

    public void setOrientation(int orientation) {}

    /** Belongs to ViewGroup. */
    public void addView(View child) {}
}
