package javax.annotation;

/** The annotation of generated code, which a JDK no longer has. */
public @interface Generated {
  String[] value();

  String date() default "";

  String comments() default "";
}
