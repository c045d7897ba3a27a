import { expect, onTestFinished, test } from 'vitest';
import type { AuditRecord } from '../../src/authz/logs/audit-log.ts';
import { createAuditSink } from '../../src/authz/logs/audit-sink.ts';
import { ModelHistory } from '../../src/services/models/model-history.ts';
import { ProjectService } from '../../src/services/projects/project-service.ts';
import { SettingsSource } from '../../src/services/projects/settings-source.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { docModel } from '../support/model-calls.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { stagedModels } from '../support/staged-models.ts';
import { NO_INSTANCES } from '../support/write-admission.ts';

const PLAIN = docModel({ viewer: {}, editor: {} });
const OTHER = docModel({ viewer: { union: [{ this: {} }, { computed: 'editor' }] }, editor: {} });

test('who wrote, forced or brought back which model stands in the audit log, once it is committed', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const { pool } = database;
  const records: AuditRecord[] = [];
  const settingsSource = new SettingsSource({
    pool,
    admission: NO_INSTANCES,
    clock: systemClock,
    region: '',
    defaultProjectId: 'default',
    readBudgetDefault: 10_000,
    ttlMs: 1_000,
    cacheMax: 10,
    distributor: { setModel: () => Promise.resolve() },
    onUnsoundModel: () => undefined,
    onRegionRefused: () => undefined,
    onOld: () => undefined,
    isAlone: () => true,
  });
  const models = stagedModels(pool, settingsSource, () => projects);
  const projects = new ProjectService({
    pool,
    admission: NO_INSTANCES,
    clock: systemClock,
    defaultProjectId: 'default',
    readBudgetMin: 100,
    listMax: 10,
    models,
    settingsSource,
    audit: createAuditSink({ write: (record) => void records.push(record) }),
  });
  const history = new ModelHistory({ pool, projects, settingsSource, models });
  const fresh = { id: 'p', name: 'p', modelJson: PLAIN, dataRegion: '', maxCheckReads: 0 };
  await projects.create(fresh, 'r1', 'operator:a');
  const call = {
    projectId: 'p',
    expectedVersion: null,
    comment: '',
    force: true,
    author: { createdBy: 'operator:b', rpc: 'WriteModel', requestId: 'r2' },
    deadlineMs: Infinity,
  };
  await history.write({ ...call, modelJson: OTHER, modelGate: '' });
  const author = { createdBy: 'operator:c', rpc: 'RollBackModel', requestId: 'r3' };
  await history.rollBack({ ...call, author, force: false, version: 0 });
  // A write by another version has the one in force ignore what it does not admit: said once.
  const writer = { createdBy: '', caller: 'app', rpc: 'WriteTuples', requestId: 'r4' };
  await models.ignoreMisfits('p', writer);
  await models.ignoreMisfits('p', writer);
  const refused = history.write({ ...call, modelJson: OTHER, modelGate: '', expectedVersion: 1 });
  await expect(refused).rejects.toMatchObject({ reason: 'MODEL_VERSION_CHANGED' });
  const sha256 = expect.stringMatching(/^[0-9a-f]{64}$/) as string;
  const at = expect.stringMatching(/^\d{4}-.*Z$/) as string;
  const common = { kind: 'admin_action', project_id: 'p', at, model_sha256: sha256 };
  expect(records).toEqual([
    {
      ...common,
      operation: 'create_project',
      by: 'operator:a',
      rpc: 'CreateProject',
      request_id: 'r1',
      model_version: 1,
      model_state: 'active',
    },
    {
      ...common,
      operation: 'write_model',
      by: 'operator:b',
      rpc: 'WriteModel',
      request_id: 'r2',
      model_version: 2,
      model_state: 'active',
      forced: true,
    },
    {
      ...common,
      operation: 'roll_back_model',
      by: 'operator:c',
      rpc: 'RollBackModel',
      request_id: 'r3',
      model_version: 3,
      model_state: 'active',
      rolled_back_to: 1,
    },
    {
      kind: 'admin_action',
      project_id: 'p',
      at,
      operation: 'ignore_misfits',
      by: '',
      caller: 'app',
      rpc: 'WriteTuples',
      request_id: 'r4',
    },
  ]);
});
