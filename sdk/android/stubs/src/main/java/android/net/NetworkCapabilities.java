package android.net;

/** Compile-time stub: only what the SDK uses. */
public final class NetworkCapabilities {
    public static final int NET_CAPABILITY_INTERNET = 12;
}
