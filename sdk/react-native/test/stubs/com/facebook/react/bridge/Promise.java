package com.facebook.react.bridge;

import org.jetbrains.annotations.*;

public interface Promise {
    void resolve(@Nullable Object value);
    void reject(@NotNull String code, @Nullable Throwable error);
}
