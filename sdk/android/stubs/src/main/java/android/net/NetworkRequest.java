package android.net;

/** Compile-time stub: only what the SDK uses. */
public class NetworkRequest {
    public static class Builder {
        public Builder addCapability(int capability) {
            return this;
        }

        public NetworkRequest build() {
            return new NetworkRequest();
        }
    }
}
