const THIS = { this: {} };
const through = (tupleset: string, computed: string) => ({
  tuple_to_userset: { tupleset, computed },
});

/** The namespace model of the data set, as model_json: editors and viewers inherit from parent folders and the workspace. */
export const DATASET_MODEL_JSON = JSON.stringify({
  schema_version: 1,
  namespaces: {
    folder: {
      relations: {
        parent: {},
        owner: {},
        editor: {
          union: [
            THIS,
            { computed: 'owner' },
            through('parent', 'editor'),
            through('parent', 'admin'),
          ],
        },
        viewer: {
          union: [
            THIS,
            { computed: 'editor' },
            through('parent', 'viewer'),
            through('parent', 'member'),
          ],
        },
      },
    },
    doc: {
      relations: {
        parent: {},
        owner: {},
        editor: { union: [THIS, { computed: 'owner' }, through('parent', 'editor')] },
        viewer: { union: [THIS, { computed: 'editor' }, through('parent', 'viewer')] },
      },
    },
  },
});
