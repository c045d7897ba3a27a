import { peerModelOfText } from '../../language/openfga/openfga-json.ts';
import { ownNameOf, storeNameOf } from '../../language/openfga/store-names.ts';
import type {
  OpenFgaModel,
  OpenFgaStore,
  OpenFgaStores,
} from '../../services/openfga/openfga-stores.ts';

/** Types of a model, each with its relations, and its conditions: in the names of the store. */
export type ModelNames = {
  readonly types: ReadonlyMap<string, ReadonlySet<string>>;
  readonly conditions: ReadonlySet<string>;
};

/** Models whose names are remembered. */
const REMEMBERED_MAX = 64;
/** Models of a store that are searched for a name of which only a hash is kept. */
const MODELS_PAGE = 100;

/** Names of models, which never change; remembered by least recent use. */
export class ModelNameCache {
  readonly #stores: OpenFgaStores;
  readonly #byModel = new Map<string, ModelNames>();

  constructor(stores: OpenFgaStores) {
    this.#stores = stores;
  }

  /** The names of a model of the store that is in force. undefined if the id is unknown. */
  async of(store: OpenFgaStore, modelId: string): Promise<ModelNames | undefined> {
    const key = `${store.id}/${modelId}`;
    const known = this.#byModel.get(key);
    if (known !== undefined) {
      this.#byModel.delete(key);
      this.#byModel.set(key, known);
      return known;
    }
    const model = await this.#stores.model(store, modelId);
    if (model === undefined) return undefined;
    const names = namesOf(model);
    this.#byModel.set(key, names);
    for (const oldest of this.#byModel.keys()) {
      if (this.#byModel.size <= REMEMBERED_MAX) break;
      this.#byModel.delete(oldest);
    }
    return names;
  }

  /** Finds the names of `own` in the store; hashed ones are found if a model of the store has them. */
  async storeNames(
    store: OpenFgaStore,
    own: Iterable<string>,
  ): Promise<(name: string) => string | undefined> {
    const isHashed = [...own].some((name) => storeNameOf(name) === undefined);
    const hashed = isHashed ? await this.#hashed(store) : new Map<string, string>();
    return (name) => storeNameOf(name) ?? hashed.get(name);
  }

  async #hashed(store: OpenFgaStore): Promise<ReadonlyMap<string, string>> {
    const found = new Map<string, string>();
    for (let below = 0; ;) {
      const models = await this.#stores.models(store, below, MODELS_PAGE);
      for (const model of models) {
        const { types, conditions } = namesOf(model);
        const relations = [...types.values()].flatMap((one) => [...one]);
        for (const name of [...types.keys(), ...relations, ...conditions]) {
          found.set(ownNameOf(name), name);
        }
      }
      const last = models.at(-1);
      if (last === undefined || models.length < MODELS_PAGE) return found;
      below = last.version;
    }
  }
}

function namesOf({ document }: OpenFgaModel): ModelNames {
  const peer = peerModelOfText(document);
  return {
    types: new Map(
      peer.types.map(({ name, relations }) => [name, new Set(relations.map((one) => one.name))]),
    ),
    conditions: new Set(peer.conditions.map(({ name }) => name)),
  };
}
