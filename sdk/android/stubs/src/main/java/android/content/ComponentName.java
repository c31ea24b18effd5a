package android.content;

/** Compile-time stub. */
public final class ComponentName {}
