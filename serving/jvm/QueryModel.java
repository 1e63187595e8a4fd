import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.tensorflow.Result;
import org.tensorflow.SavedModelBundle;
import org.tensorflow.Tensor;
import org.tensorflow.ndarray.NdArray;
import org.tensorflow.ndarray.NdArrays;
import org.tensorflow.ndarray.Shape;
import org.tensorflow.types.TBool;
import org.tensorflow.types.TFloat32;
import org.tensorflow.types.TInt64;
import org.tensorflow.types.TString;

/**
 * A query model in a JVM: all signatures that take queries, on TensorFlow's own runtime.
 *
 * <p>Arguments: the folder of the query model, and a file with one query per line. Prints one line
 * per output of each signature: signature, output, and the values, row by row.
 */
public final class QueryModel {
  private static final float SHARE = 0.8f;
  private static final float[] COSINES = {0.2f, 0.5f, 0.8f};

  public static void main(String[] arguments) throws Exception {
    List<String> queries = Files.readAllLines(Path.of(arguments[1]), StandardCharsets.UTF_8);
    try (SavedModelBundle model = SavedModelBundle.load(arguments[0], "serve");
        TString texts = TString.tensorOf(NdArrays.vectorOfObjects(queries.toArray(String[]::new)));
        TFloat32 shares = filled(Shape.of(queries.size()), SHARE);
        TFloat32 cosines = repeated(queries.size(), COSINES)) {
      print(model, "serving_default", Map.of("query", texts));
      print(model, "encode", Map.of("query", texts));
      print(model, "query_at", Map.of("query", texts, "recall", shares));
      print(model, "share_at", Map.of("query", texts, "share", shares));
      print(model, "recall_at", Map.of("query", texts, "cosines", cosines));
    }
  }

  private static TFloat32 filled(Shape shape, float value) {
    return TFloat32.tensorOf(shape, data -> data.scalars().forEach(each -> each.setFloat(value)));
  }

  private static TFloat32 repeated(int rows, float[] values) {
    return TFloat32.tensorOf(
        Shape.of(rows, values.length),
        data -> {
          for (long row = 0; row < rows; row++) {
            for (int column = 0; column < values.length; column++) {
              data.setFloat(values[column], row, column);
            }
          }
        });
  }

  private static void print(SavedModelBundle model, String signature, Map<String, Tensor> inputs) {
    try (Result result = model.function(signature).call(new HashMap<>(inputs))) {
      Map<String, Tensor> sorted = new TreeMap<>();
      result.forEach(each -> sorted.put(each.getKey(), each.getValue()));
      sorted.forEach(
          (name, tensor) -> System.out.println(signature + " " + name + values(tensor)));
    }
  }

  private static String values(Tensor tensor) {
    StringBuilder text = new StringBuilder();
    if (tensor instanceof TFloat32 numbers) {
      numbers.scalars().forEach(each -> text.append(String.format(Locale.ROOT, " %.9g", each.getFloat())));
    } else if (tensor instanceof TInt64 numbers) {
      numbers.scalars().forEach(each -> text.append(" ").append(each.getLong()));
    } else if (tensor instanceof TBool flags) {
      flags.scalars().forEach(each -> text.append(each.getBoolean() ? " 1" : " 0"));
    }
    return text.toString();
  }
}
