package android.content;

/** Compile-time stub: only what the SDK uses. */
public class Intent {
    public static final String ACTION_VIEW = "android.intent.action.VIEW";
    public static final int FLAG_ACTIVITY_LAUNCHED_FROM_HISTORY = 0x00100000;

    private final String action;
    private String data;
    private int flags;

    public Intent(String action) {
        this.action = action;
    }

    public Intent setClassName(String packageName, String className) {
        return this;
    }

    public Intent setPackage(String packageName) {
        return this;
    }

    /** The real method takes a Uri and is called `setData`; the SDK only reads. */
    public Intent stubData(String url) {
        data = url;
        return this;
    }

    public Intent setFlags(int flags) {
        this.flags = flags;
        return this;
    }

    public String getAction() {
        return action;
    }

    public String getDataString() {
        return data;
    }

    public int getFlags() {
        return flags;
    }
}
