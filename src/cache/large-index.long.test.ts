/* 100,000 users and groups, instead of 30,000. */
import './large-index.test.ts';
