package android.system;

/** Compile-time stub. */
public final class ErrnoException extends Exception {}
