package com.facebook.react.bridge;

public abstract class ReactContext extends android.content.Context {}
