/* 150 random models of each peer, instead of 40. */
import './random-peers.test.ts';
