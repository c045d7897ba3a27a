/* Four hundred random bodies of each kind, instead of eighty. */
import './decode-equals-library.test.ts';
