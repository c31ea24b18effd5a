package android.util;

/** Compile-time stub: only what the SDK uses. */
public class DisplayMetrics {
    public int widthPixels = 1080;
    public int heightPixels = 2400;
    public float density = 2.5f;
}
