import { describe, expect, test } from 'vitest';
import { adminRefusal } from './authorization.ts';

describe('adminRefusal', () => {
  test('passes the right secret only', () => {
    expect(adminRefusal('s3cret', ['s3cret'])).toBeNull();
    for (const given of ['', 's3cre', 's3crets', 'S3cret']) {
      expect(adminRefusal(given, ['s3cret'])?.reason).toBe('ADMIN_SECRET_INVALID');
    }
  });

  test('passes each of several while the secret is rotated', () => {
    expect(adminRefusal('old', ['old', 'new'])).toBeNull();
    expect(adminRefusal('new', ['old', 'new'])).toBeNull();
    expect(adminRefusal('old\nnew', ['old', 'new'])?.reason).toBe('ADMIN_SECRET_INVALID');
  });

  test('is disabled without a configured secret', () => {
    expect(adminRefusal('', [])?.reason).toBe('ADMIN_DISABLED');
  });
});
