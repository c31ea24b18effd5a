package com.facebook.react.bridge;

import org.jetbrains.annotations.NotNull;

public interface NativeModule {
    @NotNull String getName();
}
