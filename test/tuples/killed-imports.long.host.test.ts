/* A kill at each moment on its own, and one while an empty tenant is written. */
import './killed-imports.host.test.ts';
