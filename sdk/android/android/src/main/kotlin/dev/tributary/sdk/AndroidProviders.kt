package dev.tributary.sdk

import android.content.Context
import android.content.Intent
import android.content.pm.PackageManager
import android.os.Bundle
import android.os.IBinder
import android.webkit.WebSettings

private const val PLAY_STORE = "com.android.vending"
private const val PLAY_SERVICES = "com.google.android.gms"
private const val REFERRER_ACTION = "com.google.android.finsky.BIND_GET_INSTALL_REFERRER_SERVICE"
private const val REFERRER_CLASS = "com.google.android.finsky.externalreferrer.GetInstallReferrerService"
private const val REFERRER_INTERFACE = "com.google.android.finsky.externalreferrer.IGetInstallReferrerService"
private const val ID_ACTION = "com.google.android.gms.ads.identifier.service.START"
private const val ID_INTERFACE = "com.google.android.gms.ads.identifier.internal.IAdvertisingIdService"
private const val ID_PERMISSION = "com.google.android.gms.permission.AD_ID"

/** The id that Google Play returns if the user has deleted the advertising id. */
private const val NO_ID = "00000000-0000-0000-0000-000000000000"

/** Data from Google Play and the web view. */
internal class AndroidProviders(private val context: Context) : Providers() {
    override val hasInstallReferrer get() = true

    override fun installReferrer(): InstallReferrer? {
        val intent = Intent(REFERRER_ACTION).setClassName(PLAY_STORE, REFERRER_CLASS)
        return BoundService(context, intent, REFERRER_INTERFACE).use { service ->
            service.call(
                IBinder.FIRST_CALL_TRANSACTION,
                { data ->
                    // A parcelable is preceded by a flag that says whether it is there.
                    data.writeInt(1)
                    Bundle().apply { putString("package_name", context.packageName) }.writeToParcel(data, 0)
                },
                { reply -> if (reply.readInt() == 0) null else referrer(Bundle.CREATOR.createFromParcel(reply)) },
            )
        }
    }

    private fun referrer(found: Bundle): InstallReferrer {
        fun seconds(name: String) = found.getLong("${name}_seconds").takeIf { it > 0 }
        return InstallReferrer(
            referrer = found.getString("install_referrer"),
            clickAtSeconds = seconds("referrer_click_timestamp"),
            installBeginAtSeconds = seconds("install_begin_timestamp"),
            clickAtServerSeconds = seconds("referrer_click_timestamp_server"),
            installBeginAtServerSeconds = seconds("install_begin_timestamp_server"),
        )
    }

    /** Reads the advertising id if the app declares Google's permission for it and the user does not limit tracking. */
    override fun advertisingId(): String? {
        if (!declares(ID_PERMISSION)) return null
        val intent = Intent(ID_ACTION).setPackage(PLAY_SERVICES)
        return BoundService(context, intent, ID_INTERFACE).use { service ->
            val isLimited = service.call(IBinder.FIRST_CALL_TRANSACTION + 1, { it.writeInt(1) }, { it.readInt() != 0 })
            val id = if (isLimited) null else service.call(IBinder.FIRST_CALL_TRANSACTION, { }, { it.readString() })
            id?.takeUnless { it.isEmpty() || it == NO_ID }
        }
    }

    override fun userAgent(): String? = WebSettings.getDefaultUserAgent(context)

    private fun declares(permission: String): Boolean {
        val info = context.packageManager.getPackageInfo(context.packageName, PackageManager.GET_PERMISSIONS)
        return info.requestedPermissions?.contains(permission) == true
    }
}
