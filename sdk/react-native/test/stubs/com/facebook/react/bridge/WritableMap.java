package com.facebook.react.bridge;

import org.jetbrains.annotations.*;

public interface WritableMap {
    void putString(@NotNull String key, @Nullable String value);
    void putDouble(@NotNull String key, double value);
}
