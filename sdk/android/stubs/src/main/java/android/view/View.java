package android.view;

import android.content.Context;

/** Compile-time stub for the sample. */
public class View {
    public View(Context context) {}

    public void setOnClickListener(OnClickListener listener) {}

    public interface OnClickListener {
        void onClick(View view);
    }
}
