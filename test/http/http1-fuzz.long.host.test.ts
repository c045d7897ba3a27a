/* 600 random connections, instead of 150. */
import './http1-fuzz.host.test.ts';
