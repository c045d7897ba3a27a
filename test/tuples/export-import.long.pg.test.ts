/* Forty random round trips and sixty random filters, instead of seven and ten. */
import './export-import.pg.test.ts';
