/* Larger worlds, and more evaluators. */
import './growing-caches.test.ts';
