package dev.tributary.sdk

import android.content.ComponentName
import android.content.Context
import android.content.Intent
import android.content.ServiceConnection
import android.os.IBinder
import android.os.Parcel
import java.io.IOException
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit

/** Time to wait for a service of another app. The SDK ignores providers after five seconds. */
private const val BIND_SECONDS = 4L

/**
 * A service of Google Play. The SDK speaks to it directly, because Google's libraries would be dependencies. Blocks;
 * must not be called on the main thread, on which the connection is established.
 */
internal class BoundService(private val context: Context, private val intent: Intent, private val descriptor: String) {
    private var binder: IBinder? = null

    /** Binds the service, runs a task, and unbinds. */
    fun <T> use(task: (BoundService) -> T): T {
        val connection = Connection()
        if (!context.bindService(intent, connection, Context.BIND_AUTO_CREATE)) {
            // The documentation asks to unbind in this case, too.
            context.unbindService(connection)
            throw IOException("no service for ${intent.action}")
        }
        try {
            binder = connection.found.poll(BIND_SECONDS, TimeUnit.SECONDS)
            return task(this)
        } finally {
            context.unbindService(connection)
        }
    }

    /** Calls the service's method with this number. */
    fun <T> call(method: Int, write: (Parcel) -> Unit, read: (Parcel) -> T): T {
        val data = Parcel.obtain()
        val reply = Parcel.obtain()
        try {
            data.writeInterfaceToken(descriptor)
            write(data)
            val isAnswered = binder?.transact(method, data, reply, 0) ?: false
            if (!isAnswered) throw IOException("no answer from ${intent.action}")
            reply.readException()
            return read(reply)
        } finally {
            reply.recycle()
            data.recycle()
        }
    }

    private class Connection : ServiceConnection {
        val found = LinkedBlockingQueue<IBinder>()

        override fun onServiceConnected(name: ComponentName?, service: IBinder?) {
            if (service != null) found.offer(service)
        }

        override fun onServiceDisconnected(name: ComponentName?) = Unit
    }
}
