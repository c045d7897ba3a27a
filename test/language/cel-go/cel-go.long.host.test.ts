import { describe, expect, test } from 'vitest';
import { askPeers, celGoProgram, keepAnswers, keptText, textOfAnswers } from './peer-answers.ts';
import { QUESTIONS } from './questions.ts';

/* RECORD_CEL_GO=1 keeps the answers anew: after a change of the questions, or of the versions in go.mod. */

const isRecording = (process.env['RECORD_CEL_GO'] ?? '') !== '';
const program = celGoProgram();

describe.skipIf(program === undefined)('cel-go (Go builds it)', () => {
  test('says what is kept of it', () => {
    const answers = askPeers(program ?? '', QUESTIONS);
    expect(answers).toHaveLength(QUESTIONS.length);
    const text = textOfAnswers(QUESTIONS, answers);
    if (isRecording) keepAnswers(text);
    expect(keptText()).toBe(text);
  });
});
