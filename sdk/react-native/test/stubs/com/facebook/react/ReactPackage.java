package com.facebook.react;

import com.facebook.react.bridge.*;
import com.facebook.react.uimanager.ViewManager;
import java.util.List;
import org.jetbrains.annotations.NotNull;

public interface ReactPackage {
    @NotNull List<NativeModule> createNativeModules(@NotNull ReactApplicationContext context);
    @NotNull List<ViewManager<?, ?>> createViewManagers(@NotNull ReactApplicationContext context);
}
