import type { ClientBase } from 'pg';
import { insertModelVersion, MODEL_ACTIVE } from '../../store/sql/model-versions.ts';
import { setProjectModel } from '../../store/sql/projects.ts';
import type {
  LockedProject,
  ModelActivation,
  ModelWrite,
  ModelWrites,
  PutModel,
} from '../model-writes.ts';

/** Models of which every version decides from the commit on. */
export class ImmediateModels implements ModelWrites {
  async put(client: ClientBase, { id }: LockedProject, write: ModelWrite): Promise<PutModel> {
    const { author, force: forced, ...texts } = write;
    const row = { projectId: id, ...texts, ...author, forced, state: MODEL_ACTIVE };
    const version = await insertModelVersion(client, row);
    await setProjectModel(client, id, write.modelJson);
    return { version, state: 'active' };
  }

  settled(_projectId: string, version: number): Promise<ModelActivation> {
    const none = { tuplesScanned: 0, tuplesRefused: 0, examples: [] };
    return Promise.resolve({ version, state: 'active', ...none });
  }
}
