/* A million random bodies, instead of ten thousand. */
import './scanners-equal-library.test.ts';
