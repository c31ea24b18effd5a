package com.android.installreferrer.api;

import android.content.Context;

public abstract class InstallReferrerClient {
    public @interface InstallReferrerResponse {
        int OK = 0;
    }

    public static Builder newBuilder(Context context) { throw new RuntimeException(); }
    public abstract void startConnection(InstallReferrerStateListener listener);
    public abstract void endConnection();
    public abstract ReferrerDetails getInstallReferrer() throws android.os.RemoteException;

    public static final class Builder {
        public InstallReferrerClient build() { throw new RuntimeException(); }
    }
}
