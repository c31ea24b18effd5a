package android.net;

/** Compile-time stub: only what the SDK uses. */
public class ConnectivityManager {
    public NetworkCallback stubCallback;

    public void registerNetworkCallback(NetworkRequest request, NetworkCallback callback) {
        stubCallback = callback;
    }

    public static class NetworkCallback {
        public void onAvailable(Network network) {}
    }
}
