/* Twelve methods, instead of two. */
import './every-method.host.test.ts';
