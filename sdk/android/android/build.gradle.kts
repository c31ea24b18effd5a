import org.jetbrains.kotlin.gradle.dsl.JvmTarget
import org.jetbrains.kotlin.gradle.dsl.KotlinVersion

plugins {
    id("com.android.library")
    kotlin("android")
    `maven-publish`
}

android {
    namespace = "dev.tributary.sdk"
    compileSdk = 35

    defaultConfig {
        minSdk = 21
        consumerProguardFiles("consumer-rules.pro")
    }
    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_1_8
        targetCompatibility = JavaVersion.VERSION_1_8
    }
    // The tests of this folder use stubs of Android's classes and run in scripts/sdk_android.sh.
    sourceSets["test"].java.setSrcDirs(emptyList<String>())
    sourceSets["test"].kotlin.setSrcDirs(emptyList<String>())
    publishing {
        singleVariant("release") {
            withSourcesJar()
        }
    }
}

kotlin {
    compilerOptions {
        jvmTarget = JvmTarget.JVM_1_8
        languageVersion = KotlinVersion.KOTLIN_2_2
        apiVersion = KotlinVersion.KOTLIN_2_2
    }
}

dependencies {
    api(project(":core"))
}

publishing {
    publications.register<MavenPublication>("release") {
        artifactId = "tributary-android"
        afterEvaluate { from(components["release"]) }
    }
}
