package android.app;

import android.content.Context;
import android.content.ContextWrapper;
import android.content.Intent;
import android.os.Bundle;
import android.view.View;

/** Compile-time stub: only what the SDK and the sample use. */
public class Activity extends ContextWrapper {
    private Intent intent;

    public Activity() {
        super(null);
    }

    public Activity(Context base) {
        super(base);
    }

    public Intent getIntent() {
        return intent;
    }

    public void setIntent(Intent intent) {
        this.intent = intent;
    }

    public void setContentView(View view) {}

    protected void onCreate(Bundle savedInstanceState) {}

    protected void onNewIntent(Intent intent) {}
}
