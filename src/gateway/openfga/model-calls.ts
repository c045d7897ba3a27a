import { create, type JsonObject } from '@bufbuild/protobuf';
import {
  ModelActivationState,
  WriteModelRequestSchema,
} from '../../gen/gatehouse/v1/model_service_pb.ts';
import { peerModelOfText } from '../../language/openfga/openfga-json.ts';
import { withOwnNames } from '../../language/openfga/store-names.ts';
import { importPeerModel } from '../../language/peers/import-peer-model.ts';
import type { PeerModel, PeerRemark, PeerRule } from '../../language/peers/peer-model.ts';
import { MODEL_SUBJECTS_MAX } from '../../model/namespace/model-subjects.ts';
import type { OpenFgaModel, OpenFgaStore } from '../../services/openfga/openfga-stores.ts';
import { mustAdmit } from '../callers/guarded-service.ts';
import { mustRule } from '../callers/method-rules.ts';
import { type DoorAnswer, type DoorCall, modelNotFound, mustHandler, ulidAt } from './door-call.ts';
import { DoorError, invalid } from './door-error.ts';
import {
  invalidPageToken,
  type DoorMembers,
  objectsOf,
  pageSizeOf,
  textOf,
  valueOf,
} from './door-json.ts';

const GET_MODEL = mustRule('/gatehouse.v1.ModelService/GetModel');
const WRITE_MODEL = mustRule('/gatehouse.v1.ModelService/WriteModel');
/** Equals their `max_authorization_model_size`. */
const DOCUMENT_BYTES_MAX = 256 * 1024;
const REMARKS_MAX = 10;
/** Operands of one relation, all levels together. */
const OPERANDS_MAX = 256;

/** POST /stores/:store/authorization-models. */
export async function writeAuthorizationModel(
  call: DoorCall,
  store: OpenFgaStore,
): Promise<DoorAnswer> {
  const { parts, credential } = call;
  const { projectId } = store;
  mustAdmit(credential, WRITE_MODEL, { projectId }, parts.onOutOfScope);
  const document = documentOf(call.body);
  const peer = withOwnNames(boundedModel(peerModelOfText(document)));
  const { document: own, problems } = importPeerModel(peer, { userType: 'none' });
  if (own === undefined) throw invalidModel(problems);
  const kept = await parts.stores.recordModel(store, document);
  const write = mustHandler(parts.model.writeModel);
  const stateAfter = async (how: {
    readonly dryRun?: boolean;
    readonly force?: boolean;
  }): Promise<ModelActivationState> => {
    const request = create(WriteModelRequestSchema, {
      projectId,
      model: { form: { case: 'json', value: JSON.stringify(own) } },
      comment: kept.comment,
      ...how,
    });
    const { activation } = await write(request, call.contextOf('WriteAuthorizationModel'));
    return activation?.state ?? ModelActivationState.ACTIVE;
  };
  // Stored tuples that do not fit are passed over, as there. Where all fit the hot path answers.
  const fits = (await stateAfter({ dryRun: true })) !== ModelActivationState.REFUSED;
  const state = await stateAfter(fits ? {} : { force: true });
  if (state === ModelActivationState.PENDING) {
    const text = `Authorization Model '${kept.id}' comes into force once all stored tuples were looked at`;
    throw new DoorError(503, 'unavailable', text);
  }
  if (state === ModelActivationState.REFUSED || state === ModelActivationState.CANCELLED) {
    const text = 'stored tuples do not fit the model: it did not come into force';
    throw new DoorError(400, 'invalid_authorization_model', text);
  }
  return { status: 201, body: { authorization_model_id: kept.id } };
}

/** GET /stores/:store/authorization-models. */
export async function readAuthorizationModels(
  call: DoorCall,
  store: OpenFgaStore,
): Promise<DoorAnswer> {
  const { parts, credential, query } = call;
  mustAdmit(credential, GET_MODEL, { projectId: store.projectId }, parts.onOutOfScope);
  const size = pageSizeOf(query.get('page_size') ?? undefined);
  const scope = `models\n${store.id}`;
  const token = query.get('continuation_token') ?? '';
  const [below] = token === '' ? [0] : (parts.stores.cursors.decode(scope, token) ?? []);
  if (typeof below !== 'number') throw invalidPageToken();
  const found = await parts.stores.models(store, below, size + 1);
  const models = found.slice(0, size);
  const last = models.at(-1);
  const hasMore = found.length > size && last !== undefined;
  const next = hasMore ? parts.stores.cursors.encode(scope, [last.version]) : '';
  const body = { authorization_models: models.map(modelJson), continuation_token: next };
  return { status: 200, body };
}

/** GET /stores/:store/authorization-models/:id. */
export async function readAuthorizationModel(
  call: DoorCall,
  store: OpenFgaStore,
): Promise<DoorAnswer> {
  const { parts, credential } = call;
  mustAdmit(credential, GET_MODEL, { projectId: store.projectId }, parts.onOutOfScope);
  const id = ulidAt('ReadAuthorizationModelRequest.Id', call.id);
  const model = await parts.stores.model(store, id);
  if (model === undefined) throw modelNotFound(id);
  return { status: 200, body: { authorization_model: modelJson(model) } };
}

/**
 * Refuses relations with too many types of subjects or operands before they are compared with each other:
 * 6,000 of each took 15 s. Errors: `invalid_authorization_model`.
 */
function boundedModel(peer: PeerModel): PeerModel {
  for (const { place, subjects, rule } of peer.types.flatMap(({ relations }) => relations)) {
    const isWide = subjects.length > MODEL_SUBJECTS_MAX;
    if (!isWide && operandsOf(rule) <= OPERANDS_MAX) continue;
    const what = isWide ? `${MODEL_SUBJECTS_MAX} types of subjects` : `${OPERANDS_MAX} operands`;
    throw new DoorError(400, 'invalid_authorization_model', `${place}: at most ${what}`);
  }
  return peer;
}

function operandsOf(rule: PeerRule): number {
  switch (rule.op) {
    case 'union':
    case 'intersection':
      return rule.children.reduce((sum, child) => sum + operandsOf(child), 1);
    case 'exclusion':
      return 1 + operandsOf(rule.include) + operandsOf(rule.exclude);
    default:
      return 1;
  }
}

function modelJson({ id, document }: OpenFgaModel): object {
  return { id, ...(JSON.parse(document) as JsonObject) };
}

/** The stored text of a body, as it came. Errors: those of a body that is no model at all. */
function documentOf(body: DoorMembers): string {
  const types = objectsOf(body, 'type_definitions');
  const version = textOf(body, 'schema_version');
  if (types.length === 0) {
    const text = 'invalid WriteAuthorizationModelRequest.TypeDefinitions';
    const code = 'type_definitions_too_few_items';
    throw new DoorError(400, code, `${text}: value must contain at least 1 item(s)`);
  }
  const conditions = valueOf(body, 'conditions');
  const document = JSON.stringify({
    schema_version: version,
    type_definitions: types,
    ...(conditions === undefined ? {} : { conditions }),
  });
  // JSON.stringify writes unpaired surrogates, and nothing else that is no text, as escapes of this form.
  if (/(?<!\\)(?:\\\\)*\\ud[89a-f]/.test(document))
    throw invalid('the model holds unpaired surrogates');
  if (Buffer.byteLength(document) > DOCUMENT_BYTES_MAX) {
    const text = `model exceeds size limit: at most ${DOCUMENT_BYTES_MAX} bytes`;
    throw new DoorError(400, 'exceeded_entity_limit', text);
  }
  return document;
}

function invalidModel(problems: readonly PeerRemark[]): DoorError {
  const texts = problems.slice(0, REMARKS_MAX).map(({ place, text }) => `${place}: ${text}`);
  return new DoorError(400, 'invalid_authorization_model', texts.join('; '));
}
