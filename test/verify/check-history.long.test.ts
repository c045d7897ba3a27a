/* Sixty random histories, instead of 15. */
import './check-history.test.ts';
