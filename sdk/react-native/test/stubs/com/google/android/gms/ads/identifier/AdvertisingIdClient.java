package com.google.android.gms.ads.identifier;

import android.content.Context;
import java.io.IOException;
import org.jetbrains.annotations.*;

public final class AdvertisingIdClient {
    @NotNull
    public static Info getAdvertisingIdInfo(@NotNull Context context) throws IOException {
        throw new RuntimeException();
    }

    public static final class Info {
        @Nullable public String getId() { throw new RuntimeException(); }
        public boolean isLimitAdTrackingEnabled() { throw new RuntimeException(); }
    }
}
