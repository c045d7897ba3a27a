/* 2,000 connections at once, instead of 300; an answer of 30 MB. */
import './listener.host.test.ts';
