import org.jetbrains.kotlin.gradle.dsl.JvmTarget
import org.jetbrains.kotlin.gradle.dsl.KotlinVersion

plugins {
    kotlin("jvm")
    `java-library`
    `maven-publish`
}

// The Android layer of these classes is compiled for Android 5, which knows the classes of Java 7 and some of Java 8.
java {
    sourceCompatibility = JavaVersion.VERSION_1_8
    targetCompatibility = JavaVersion.VERSION_1_8
    withSourcesJar()
}

kotlin {
    compilerOptions {
        jvmTarget = JvmTarget.JVM_1_8
        languageVersion = KotlinVersion.KOTLIN_2_2
        apiVersion = KotlinVersion.KOTLIN_2_2
        allWarningsAsErrors = true
        freeCompilerArgs.addAll(
            "-Xjdk-release=8",
            "-Xno-source-debug-extension",
            "-Xno-call-assertions",
            "-Xno-receiver-assertions",
        )
    }
}

// The tests use newer classes of Java.
tasks.named<org.jetbrains.kotlin.gradle.tasks.KotlinCompile>("compileTestKotlin") {
    compilerOptions.freeCompilerArgs.set(emptyList())
}

dependencies {
    api(kotlin("stdlib", "2.2.20"))
}

// The tests have a small runner of their own, so that scripts/sdk_android.sh can run them without Gradle.
val runTests = tasks.register<JavaExec>("runTests") {
    classpath = sourceSets["test"].runtimeClasspath
    mainClass = "dev.tributary.sdk.CoreTestsKt"
    systemProperty("tables", rootDir.resolve("../tables").path)
}
tasks.named("check") { dependsOn(runTests) }

publishing {
    publications.create<MavenPublication>("release") {
        artifactId = "tributary-core"
        from(components["java"])
    }
}
