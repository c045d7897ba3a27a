/* Sixty random histories, instead of 8. */
import './check-history.test.ts';
